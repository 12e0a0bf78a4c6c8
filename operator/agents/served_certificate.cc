#include "operator/agents/served_certificate.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace stoker::control {

namespace {

Result<std::string> read_file(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file.good() || text.str().empty()) {
        return fail(ErrorCode::kNotFound, fmt::format("cannot read {}", path));
    }
    return text.str();
}

}  // namespace

Result<ServedCertificate> read_served_certificate(const std::string& directory) {
    ServedCertificate served;
    STOKER_TRY(served.leaf.certificate, read_file(directory + "/tls.crt"));
    STOKER_TRY(served.leaf.key, read_file(directory + "/tls.key"));
    STOKER_TRY(served.trust, read_file(directory + "/ca.crt"));
    if (const Status fits = check_pair(served.leaf); !fits) {
        return fail(fits.error().prefixed(directory));
    }
    return served;
}

}  // namespace stoker::control
