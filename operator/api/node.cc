#include "operator/api/node.h"

#include "operator/api/json_reader.h"

namespace stoker::control {

namespace {

Node read_node(const JsonReader& root) {
    Node result;
    result.meta = read_meta(root);
    result.unschedulable = root.object("spec").flag("unschedulable");
    result.boot_id = root.object("status").object("nodeInfo").text("bootID");
    root.object("status").each("conditions", [&](const JsonReader& condition) {
        if (condition.text("type") != "Ready") {
            return;
        }
        result.ready = condition.text("status") == "True";
        if (!result.ready) {
            result.not_ready_since = condition.maybe_time("lastTransitionTime");
        }
    });
    return result;
}

}  // namespace

Result<Node> parse_node(std::string_view json) {
    return read_document(json, read_node);
}

}  // namespace stoker::control
