#include "operator/sidecars/certificate_keeper.h"

#include <utility>

#include "common/log/log.h"
#include "operator/kube/pause.h"

namespace stoker::control {

CertificateKeeper::CertificateKeeper(Load load, const Clock& clock, Options options)
    : load_(std::move(load)),
      clock_(clock),
      options_(std::move(options)) {}

Status CertificateKeeper::look() {
    STOKER_TRY(ServedCertificate loaded, load_());
    const ServedCertificatePtr before = current();
    if (before && *before == loaded) {
        return {};
    }
    STOKER_TRY(const CertificateFacts facts, read_certificate(loaded.leaf.certificate));
    expires_ = facts.validity.not_after.time_since_epoch().count();
    const auto now = std::make_shared<const ServedCertificate>(std::move(loaded));
    *current_.lock() = now;
    has_one_ = true;
    for (const OnChange& listener : listeners_) {
        listener(*now);
    }
    return {};
}

void CertificateKeeper::run(const std::stop_token& stop) {
    do {
        const Status looked = look();
        if (stop.stop_requested()) {
            return;
        }
        std::string trouble = looked ? "" : looked.error().message;
        if (trouble != told_ && !trouble.empty()) {
            log::warning(
                "no new certificate for " + options_.purpose,
                {{"error", trouble}, {"has_an_older_one", has_one()}});
        }
        told_ = std::move(trouble);
    } while (
        pause_until(clock_, clock_.now() + (has_one() ? options_.interval : options_.retry), stop));
}

}  // namespace stoker::control
