#include "operator/core/spec/packing.h"

#include <fmt/format.h>

#include "common/base/fnv1a.h"

namespace stoker::control {

std::string packing_digest(const DatasetSpec& spec) {
    const DatasetPacking& packing = *spec.packing;
    const DatasetSource& from = packing.from;
    const std::string claim = from.volume ? from.volume->claim_name.value_or("") : "";
    const bool is_random = packing.order == PackingOrder::kRandom;
    const std::string text = fmt::format(
        "{}\n{}\n{}\n{}\n{}\n{}",
        from.storage_uri,
        from.endpoint,
        claim,
        packing.chunk_bytes.count(),
        choice_text(packing.order),
        is_random ? packing.seed : 0);
    return fmt::format("{:016x}", fnv1a(text));
}

bool is_packed(const Dataset& dataset) {
    return !dataset.spec.packing ||
           (dataset.status.packing &&
            dataset.status.packing->packed_digest == packing_digest(dataset.spec));
}

std::string tell_packing(const Dataset& dataset, bool foreign) {
    const Condition* packed = find_condition(dataset.status.conditions, kPacked);
    if (foreign || packed == nullptr) {
        return fmt::format("Dataset {} is not packed yet.", to_string(dataset.meta.key()));
    }
    return fmt::format("Dataset {} is not packed yet: {}", dataset.meta.name, packed->message);
}

}  // namespace stoker::control
