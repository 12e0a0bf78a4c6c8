#include "node/core/view_request.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace stoker::node {

namespace {

using Context = std::map<std::string, std::string>;

constexpr std::size_t kNameSizeMax = 253;

std::string value_of(const Context& context, const std::string& key) {
    const auto found = context.find(key);
    return found == context.end() ? std::string{} : found->second;
}

// Reads a mandatory name from the volume attributes.
Result<std::string> name_of(const Context& context, const std::string& key) {
    std::string name = value_of(context, key);
    if (!is_path_component(name)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("volume attribute {} is missing or is not a name", key));
    }
    return name;
}

std::optional<View> parse_view(const std::string& text) {
    if (text == "data") {
        return View::kData;
    }
    if (text == "owner") {
        return View::kOwner;
    }
    if (text == "shared") {
        return View::kShared;
    }
    if (text == "guest") {
        return View::kGuest;
    }
    if (text == "files") {
        return View::kFiles;
    }
    if (text == "files-server") {
        return View::kFilesServer;
    }
    return std::nullopt;
}

// Rejects views that a namespace can never have, before the API server is asked.
Status check_side(const ViewRequest& request) {
    if (request.view == View::kOwner && request.is_foreign()) {
        return fail(
            ErrorCode::kForbidden,
            "the owner view is for pods of the dataset's own namespace; other namespaces have the "
            "views shared and guest");
    }
    if (request.view == View::kGuest && !request.is_foreign()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the guest view is for other namespaces than the dataset's; use the owner view");
    }
    return {};
}

Status check_mode(View view, bool read_only) {
    if (view == View::kOwner && read_only) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the owner view is for the sidecar, which writes: remove csi.readOnly");
    }
    if (view != View::kOwner && !read_only) {
        return fail(ErrorCode::kInvalidArgument, "this view is read-only: set csi.readOnly: true");
    }
    return {};
}

}  // namespace

bool is_path_component(const std::string& name) {
    return !name.empty() && name.size() <= kNameSizeMax && name != "." && name != ".." &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
           });
}

bool is_dataset_uid(const std::string& name) {
    constexpr std::string_view kUuid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    constexpr std::string_view kInline = "inline-xxxxxxxxxxxxxxxx";
    const auto fits = [&](std::string_view shape) {
        return std::ranges::equal(name, shape, [](char c, char wanted) {
            const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            return wanted == 'x' ? is_hex : c == wanted;
        });
    };
    return fits(kUuid) || fits(kInline);
}

Result<ViewRequest> parse_view_request(const Context& context, bool read_only) {
    if (value_of(context, "csi.storage.k8s.io/ephemeral") != "true") {
        return fail(
            ErrorCode::kInvalidArgument,
            "this driver serves inline volumes of pods only, no PersistentVolumes");
    }
    ViewRequest request;
    STOKER_TRY(request.pod.ns, name_of(context, "csi.storage.k8s.io/pod.namespace"));
    request.pod.name = value_of(context, "csi.storage.k8s.io/pod.name");
    request.pod.uid = value_of(context, "csi.storage.k8s.io/pod.uid");
    STOKER_TRY(request.pool, name_of(context, "pool"));
    STOKER_TRY(request.directory.ns, name_of(context, "namespace"));
    STOKER_TRY(request.directory.uid, name_of(context, "uid"));
    if (context.contains("dataset")) {
        STOKER_TRY(request.dataset, name_of(context, "dataset"));
    }
    const std::optional<View> view = parse_view(value_of(context, "view"));
    if (!view) {
        return fail(
            ErrorCode::kInvalidArgument,
            "volume attribute view must be data, owner, shared, guest, files or files-server");
    }
    request.view = *view;
    STOKER_TRY_VOID(check_mode(request.view, read_only));
    STOKER_TRY_VOID(check_side(request));
    if (request.is_of_files() && !is_path_component(request.pod.uid)) {
        return fail(ErrorCode::kInvalidArgument, "the kubelet does not tell the pod's uid");
    }
    // Views of files show no folder of a pool, so only the name can be checked.
    if (request.is_of_files() && !is_dataset_uid(request.directory.uid)) {
        return fail(ErrorCode::kInvalidArgument, "volume attribute uid is not a Dataset's uid");
    }
    return request;
}

}  // namespace stoker::node
