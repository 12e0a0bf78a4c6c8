// A frame from a trainer or another sidecar, header first.
#include <utility>
#include <variant>

#include "proto/local/protocol.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    if (input.size() < local::kFrameHeaderBytes) {
        return;
    }
    const auto header = local::decode_frame_header(input.first(local::kFrameHeaderBytes));
    if (!header) {
        return;
    }
    const auto payload = input.subspan(local::kFrameHeaderBytes);
    const auto message = local::decode_payload(header->type, payload);
    if (!message) {
        return;
    }
    const std::vector<std::byte> again = local::encode_frame(*message, header->request_id);
    const auto back =
        local::decode_payload(header->type, std::span{again}.subspan(local::kFrameHeaderBytes));
    expect(back.has_value(), "a decoded frame can be encoded and decoded again");
    expect(local::encode_frame(*back, header->request_id) == again, "encoding is stable");
}

std::vector<std::string> seeds() {
    std::vector<std::string> result;
    // One frame of every type, empty.
    const auto add = [&result](const local::Message& message) {
        result.push_back(string_of(local::encode_frame(message, 7)));
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (add(std::variant_alternative_t<I, local::Message>{}), ...);
    }
    (std::make_index_sequence<std::variant_size_v<local::Message>>{});
    add(local::Fetch{{1, 2}});
    return result;
}

}  // namespace stoker::fuzz
