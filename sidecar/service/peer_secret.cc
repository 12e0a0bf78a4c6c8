#include "sidecar/service/peer_secret.h"

#include <algorithm>

#include <sys/random.h>

#include "common/base/check.h"
#include "common/domain/node_directory.h"

namespace stoker::sidecar {

PeerSecret random_secret() {
    PeerSecret secret{};
    // getrandom() returns up to 256 bytes in one call.
    const auto got = ::getrandom(secret.data(), secret.size(), 0);
    STOKER_CHECK(got == static_cast<ssize_t>(secret.size()), "the kernel has no random bytes");
    return secret;
}

bool is_equal(const PeerSecret& one, const PeerSecret& other) {
    std::byte difference{};
    for (std::size_t i = 0; i < one.size(); ++i) {
        difference |= one[i] ^ other[i];
    }
    return difference == std::byte{};
}

Status save_secret(Device& device, const std::string& control_directory, const PeerSecret& secret) {
    return replace_file(
        device,
        join_path(control_directory, domain::kSecretFile),
        secret,
        Durability::kProcess,
        Access::kOwner);
}

Result<PeerSecret> load_secret(Device& device, const std::string& control_directory) {
    const auto path = join_path(control_directory, domain::kSecretFile);
    STOKER_TRY(const auto bytes, read_file(device, path, local::kSecretBytes));
    PeerSecret secret{};
    if (bytes.size() != secret.size()) {
        return fail(ErrorCode::kCorruption, path + " does not hold a secret");
    }
    std::ranges::copy(bytes, secret.begin());
    return secret;
}

}  // namespace stoker::sidecar
