#include "operator/core/allocation/snapshot.h"

#include <fmt/format.h>

#include "operator/core/allocation/snapshot_fields.h"

namespace stoker::control {

namespace {

// Format version. Rises when an older reader would misread the document, not with every new field.
constexpr std::int64_t kFormat = 2;

}  // namespace

std::string print_snapshot(const AllocationSnapshot& snapshot) {
    const Json json = json_object(
        {{"format", kFormat},
         {"version", snapshot.version},
         {"servedAt", ExactTime{}.write(snapshot.served_at)},
         {"decidedAt", ExactTime{}.write(snapshot.decided_at)},
         {"view", FieldWriter::write_fields(snapshot.view)},
         {"plan", FieldWriter::write_fields(snapshot.plan)}});
    return json.text();
}

Result<AllocationSnapshot> parse_snapshot(std::string_view text) {
    AllocationSnapshot result;
    std::int64_t format = 0;
    STOKER_TRY(const Json json, Json::parse(text));
    STOKER_TRY_VOID(read_json(json, [&](const JsonReader& root) {
        format = root.integer("format");
        result.version = root.text("version");
        if (format != kFormat) {
            return;
        }
        result.served_at = root.maybe_time("servedAt").value_or(result.served_at);
        result.decided_at = root.maybe_time("decidedAt").value_or(result.decided_at);
        FieldReader::read_into(root.object("view"), result.view);
        FieldReader::read_into(root.object("plan"), result.plan);
    }));
    if (format != kFormat) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the operator (version {}) speaks format {} of the allocation, this program "
                "format {}",
                result.version.empty() ? "unknown" : result.version,
                format,
                kFormat));
    }
    return result;
}

}  // namespace stoker::control
