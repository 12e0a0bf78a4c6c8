// The state file that a store keeps beside its segments.
#include "sidecar/store/store_state.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    const std::string_view text = text_of(input);
    if (const auto state = sidecar::decode_state(text)) {
        expect(sidecar::encode_state(*state) == text, "an accepted state encodes to the same text");
    }
}

std::vector<std::string> seeds() {
    return {
        sidecar::encode_state({"0f3c-77", true, {1, 2, 9}}),
        sidecar::encode_state({"a", false, {}}),
        sidecar::encode_state({std::string(64, 'b'), true, {4294967295U}})};
}

}  // namespace stoker::fuzz
