#include "operator/api/node.h"

#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

void read_ready(const JsonReader& root, Node& node) {
    root.object("status").each("conditions", [&](const JsonReader& condition) {
        if (condition.text("type") != "Ready") {
            return;
        }
        node.ready = condition.text("status") == "True";
        if (!node.ready) {
            node.not_ready_since = condition.maybe_time("lastTransitionTime");
        }
    });
}

}  // namespace

template <>
inline constexpr auto kFields<Node> =
    std::tuple{field("metadata", &Node::meta), field("status.nodeInfo.bootID", &Node::boot_id)};
template <>
inline constexpr auto kAlsoRead<Node> = &read_ready;

template Result<Node> read_document<Node>(const Json& json);

}  // namespace stoker::control
