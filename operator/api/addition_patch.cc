#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/foreign_pod.h"

namespace stoker::control {

namespace {

using web::json::value;

// Init containers of service meshes. They stay before our sidecar, which needs the mesh's network.
constexpr std::array<std::string_view, 5> kMesh = {
    "istio-init", "istio-validation", "istio-proxy", "linkerd-init", "linkerd-proxy"};

const value& list_at(const value& root, JsonPath path) {
    static const value kNothing = value::array();
    const value* found = find_at(root, path);
    return found != nullptr && found->is_array() ? *found : kNothing;
}

// Position of the item whose member has this text; nullopt: there is none.
std::optional<std::size_t> find_item(
    const value& list, std::string_view member, const std::string& text) {
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (string_at(list.at(i), {member}) == text) {
            return i;
        }
    }
    return std::nullopt;
}

// A key, escaped as one segment of a JSON pointer.
std::string pointer_part(const std::string& key) {
    std::string result;
    for (const char c : key) {
        result += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    }
    return result;
}

class Patch {
public:
    Patch(const value& pod, const value& wanted)
        : pod_(pod),
          wanted_(wanted) {}

    void add_texts(std::string_view member) {
        const value* texts = find_at(wanted_, {"metadata", member});
        if (texts == nullptr) {
            return;
        }
        bool exists = find_at(pod_, {"metadata", member}) != nullptr;
        for (const auto& [key, text] : texts->as_object()) {
            if (find_at(pod_, {"metadata", member, key}) != nullptr) {
                continue;
            }
            const std::string path = fmt::format("/metadata/{}", member);
            if (!std::exchange(exists, true)) {
                add("add", path, value::object());
            }
            add("add", path + "/" + pointer_part(key), text);
        }
    }

    void add_volumes() {
        append_missing(
            list_at(pod_, {"spec", "volumes"}),
            list_at(wanted_, {"spec", "volumes"}),
            "/spec/volumes",
            "name");
    }

    void add_init_containers() {
        const value& present = list_at(pod_, {"spec", "initContainers"});
        std::size_t at = 0;
        while (at < present.size() &&
               std::ranges::count(kMesh, string_at(present.at(at), {"name"})) > 0) {
            ++at;
        }
        bool exists = present.size() > 0;
        for (const value& container : list_at(wanted_, {"spec", "initContainers"}).as_array()) {
            if (find_item(present, "name", string_at(container, {"name"}))) {
                ++at;  // insert after the mesh's container
                continue;
            }
            if (!std::exchange(exists, true)) {
                add("add", "/spec/initContainers", value::array());
            }
            add("add", fmt::format("/spec/initContainers/{}", at++), container);
        }
    }

    void add_to_container(const std::string& container, const std::vector<std::string>& replaced) {
        const value& containers = list_at(pod_, {"spec", "containers"});
        const auto index = find_item(containers, "name", container);
        const value& ours = list_at(wanted_, {"spec", "containers"});
        if (!index || ours.size() == 0) {
            return;
        }
        const value& theirs = containers.at(*index);
        const std::string path = fmt::format("/spec/containers/{}", *index);
        replace_variables(
            list_at(theirs, {"env"}), list_at(ours.at(0), {"env"}), path + "/env", replaced);
        append_missing(
            list_at(theirs, {"env"}), list_at(ours.at(0), {"env"}), path + "/env", "name");
        append_missing(
            list_at(theirs, {"volumeMounts"}),
            list_at(ours.at(0), {"volumeMounts"}),
            path + "/volumeMounts",
            "mountPath");
    }

    Json take() { return Json(value::array(std::move(operations_))); }

private:
    void add(std::string_view operation, const std::string& path, const value& what) {
        value entry = value::object();
        entry["op"] = value(std::string{operation});
        entry["path"] = value(path);
        entry["value"] = what;
        operations_.push_back(std::move(entry));
    }

    void append_missing(
        const value& present,
        const value& wanted,
        const std::string& path,
        std::string_view member) {
        bool exists = present.size() > 0;
        for (const value& item : wanted.as_array()) {
            if (find_item(present, member, string_at(item, {member}))) {
                continue;
            }
            if (!std::exchange(exists, true)) {
                add("add", path, value::array());
            }
            add("add", path + "/-", item);
        }
    }

    void replace_variables(
        const value& present,
        const value& wanted,
        const std::string& path,
        const std::vector<std::string>& names) {
        for (const std::string& name : names) {
            const auto old = find_item(present, "name", name);
            const auto next = find_item(wanted, "name", name);
            if (old && next && present.at(*old) != wanted.at(*next)) {
                add("replace", fmt::format("{}/{}", path, *old), wanted.at(*next));
            }
        }
    }

    const value& pod_;
    const value& wanted_;
    std::vector<value> operations_;
};

}  // namespace

Json addition_patch(
    const Json& pod,
    const Json& wanted,
    const std::string& container,
    const std::vector<std::string>& replaced) {
    Patch patch{pod.value(), wanted.value()};
    patch.add_texts("labels");
    patch.add_texts("annotations");
    patch.add_volumes();
    patch.add_init_containers();
    patch.add_to_container(container, replaced);
    return patch.take();
}

}  // namespace stoker::control
