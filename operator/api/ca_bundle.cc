#include "operator/api/ca_bundle.h"

#include "operator/api/json_reader.h"

namespace stoker::control {

std::optional<CaBundle> read_ca_bundle(const JsonReader& source) {
    const JsonReader bundle = source.object("caBundle");
    if (!bundle.present()) {
        return std::nullopt;
    }
    return CaBundle{
        bundle.choice("kind", BundleKind::kConfigMap),
        bundle.text("name"),
        bundle.text("key", "ca.crt")};
}

}  // namespace stoker::control
