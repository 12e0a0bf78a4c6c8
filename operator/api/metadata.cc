#include "operator/api/metadata.h"

#include "operator/api/json_reader.h"

namespace stoker::control {

Result<ObjectMeta> parse_metadata(std::string_view json) {
    return read_document(json, read_meta);
}

}  // namespace stoker::control
