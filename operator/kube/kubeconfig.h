#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/kube/access.h"

namespace stoker::control {

// One file of a kubeconfig list, already read.
struct KubeconfigText {
    std::string path;  // relative paths in it start at its folder
    std::string text;
};

// The access that a kubeconfig describes: clusters, users and contexts of all files together, where
// the first file that names something wins. `context` picks one; "" means the first file's
// current-context. Pure. Errors: kInvalidArgument with the file and what is wrong with it: not
// YAML, no such context, cluster or user, or a setting that we do not support (proxy-url,
// tls-server-name, auth-provider).
Result<AccessConfig> parse_kubeconfig(
    const std::vector<KubeconfigText>& files, const std::string& context = {});

// Reads `paths`, a list with ':' as in $KUBECONFIG. Missing files are left out, as kubectl does,
// unless all are missing.
Result<AccessConfig> load_kubeconfig(const std::string& paths, const std::string& context = {});

}  // namespace stoker::control
