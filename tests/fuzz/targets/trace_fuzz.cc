// A trace for `stoker advise`: plain lines or an S3 server access log.
#include "sidecar/advise/shape.h"
#include "sidecar/advise/trace_reader.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    advise::TraceReader reader{{.line_bytes_max = 200, .reads_max = 10'000, .readers_max = 100}};
    const std::string_view text = text_of(input);
    const std::size_t half = text.size() / 2;
    if (!reader.feed(text.substr(0, half)) || !reader.feed(text.substr(half))) {
        return;
    }
    const auto trace = std::move(reader).finish();
    if (!trace) {
        return;
    }
    std::size_t reads = 0;
    for (const auto& epochs : advise::by_reader(*trace, advise::describe(*trace), 48)) {
        for (const auto& epoch : epochs) {
            reads += epoch.size();
            for (const advise::SampleIndex sample : epoch) {
                expect(sample < trace->sizes.size(), "a read names a sample of the trace");
            }
        }
    }
    expect(reads == trace->reads.size(), "each read belongs to one reader and epoch");
}

std::vector<std::string> seeds() {
    return {
        "1 a 10\n2 b 20 0 1\n3 a 10 1 0\n",
        "time,key,bytes,offset,epoch,rank\n1.5,\"a, b\",10,0,0,0\n2,\"a, b\",10,10,-,1\n",
        "79a5 bucket [06/Feb/2019:00:00:38 +0000] 10.0.0.1 u 3E57 REST.GET.OBJECT k "
        "\"GET /bucket/k HTTP/1.1\" 206 - 5 9 70 10 \"-\" \"sdk\" -\n"};
}

}  // namespace stoker::fuzz
