#include "operator/sidecars/served_certificate.h"

#include "common/base/read_file.h"

namespace stoker::control {

Result<ServedCertificate> read_served_certificate(const std::string& directory) {
    ServedCertificate served;
    STOKER_TRY(served.leaf.certificate, read_filled_file(directory + "/tls.crt"));
    STOKER_TRY(served.leaf.key, read_filled_file(directory + "/tls.key"));
    STOKER_TRY(served.trust, read_filled_file(directory + "/ca.crt"));
    if (const Status fits = check_pair(served.leaf); !fits) {
        return fail(fits.error().prefixed(directory));
    }
    return served;
}

}  // namespace stoker::control
