#include "operator/api/pack_result.h"

#include "operator/api/field_codec.h"

namespace stoker::control {

template <>
inline constexpr auto kFields<PackResult> = table(
    field("chunks", &PackResult::chunks),
    field("samples", &PackResult::samples),
    field("bytes", &PackResult::bytes));

template Result<PackResult> read_document<PackResult>(const Json& json);

}  // namespace stoker::control
