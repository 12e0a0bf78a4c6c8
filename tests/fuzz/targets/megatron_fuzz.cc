// Index files of Megatron's datasets that others wrote. The first two bytes are the length of the .bin file.
#include "common/domain/megatron_index.h"
#include "tests/fuzz/targets/check_index.h"
#include "tests/support/megatron_text.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    if (input.size() < 2 + domain::MegatronIndex::kHeaderBytes) {
        return;
    }
    const std::uint64_t bin_bytes =
        std::to_integer<std::uint64_t>(input[0]) << 8U | std::to_integer<std::uint64_t>(input[1]);
    const std::string file = string_of(input.subspan(2));
    domain::MegatronIndex index{{"a.bin", bin_bytes, "b"}, {"a.idx", file.size(), "i"}};
    check_index(index, file, bin_bytes);
}

std::vector<std::string> seeds() {
    test::MegatronText modes = test::megatron_text({5, 0, 7}, 4);
    modes.type = 4;
    modes.has_modes = true;
    return {
        std::string{"\0\x08", 2} + test::megatron_text({3, 1}).text(),
        std::string{"\0\x30", 2} + modes.text()};
}

}  // namespace stoker::fuzz
