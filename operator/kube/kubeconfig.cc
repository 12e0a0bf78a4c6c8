#include "operator/kube/kubeconfig.h"

#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace stoker::control {

namespace {

// A named entry and the folder of the file that it stands in.
struct Entry {
    YAML::Node node;
    std::string folder;
};

std::string text_at(const YAML::Node& node, const char* key) {
    const YAML::Node found = node.IsMap() ? node[key] : YAML::Node();
    return found && found.IsScalar() ? found.as<std::string>() : std::string();
}

class Kubeconfig {
public:
    Status add(const KubeconfigText& file) {
        const YAML::Node root = YAML::Load(file.text);
        if (!root.IsMap()) {
            return fail(ErrorCode::kInvalidArgument, file.path + ": not a kubeconfig");
        }
        const std::string folder = std::filesystem::path(file.path).parent_path().string();
        if (current_context.empty()) {
            current_context = text_at(root, "current-context");
        }
        take(root, "clusters", "cluster", folder, clusters);
        take(root, "users", "user", folder, users);
        take(root, "contexts", "context", folder, contexts);
        return {};
    }

    std::string current_context;
    std::map<std::string, Entry> clusters;
    std::map<std::string, Entry> users;
    std::map<std::string, Entry> contexts;

private:
    static void take(
        const YAML::Node& root,
        const char* list,
        const char* item,
        const std::string& folder,
        std::map<std::string, Entry>& into) {
        const YAML::Node entries = root[list];
        if (!entries || !entries.IsSequence()) {
            return;
        }
        for (const YAML::Node& entry : entries) {
            const std::string name = text_at(entry, "name");
            if (!name.empty() && entry[item] && entry[item].IsMap()) {
                into.emplace(name, Entry{entry[item], folder});  // the first one stays
            }
        }
    }
};

std::string absolute(const Entry& entry, const char* key) {
    const std::string path = text_at(entry.node, key);
    return path.empty() || path.front() == '/' || entry.folder.empty() ? path
                                                                       : entry.folder + "/" + path;
}

Status refuse(const Entry& entry, std::initializer_list<const char*> settings) {
    for (const char* setting : settings) {
        if (entry.node[setting]) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("kubeconfig: {} is not supported", setting));
        }
    }
    return {};
}

Status read_data(const Entry& entry, const char* key, std::string& into) {
    const std::string text = text_at(entry.node, key);
    if (!text.empty()) {
        auto decoded = base64_decode(text);
        if (!decoded) {
            return fail(decoded.error().prefixed(fmt::format("kubeconfig: {}", key)));
        }
        into = *std::move(decoded);
    }
    return {};
}

Status read_cluster(const Entry& cluster, AccessConfig& config) {
    STOKER_TRY_VOID(refuse(cluster, {"proxy-url", "tls-server-name"}));
    config.server = text_at(cluster.node, "server");
    if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("kubeconfig: server {:?} is no http(s) URL", config.server));
    }
    while (config.server.ends_with('/')) {
        config.server.pop_back();
    }
    config.insecure = text_at(cluster.node, "insecure-skip-tls-verify") == "true";
    config.ca_file = absolute(cluster, "certificate-authority");
    return read_data(cluster, "certificate-authority-data", config.ca_pem);
}

ExecConfig read_exec(const Entry& user) {
    const YAML::Node node = user.node["exec"];
    ExecConfig exec;
    exec.api_version = text_at(node, "apiVersion");
    exec.command = text_at(node, "command");
    exec.interactive_mode = text_at(node, "interactiveMode");
    exec.provide_cluster_info = text_at(node, "provideClusterInfo") == "true";
    exec.directory = user.folder;
    for (const YAML::Node& argument : node["args"]) {
        exec.args.push_back(argument.as<std::string>());
    }
    for (const YAML::Node& variable : node["env"]) {
        exec.env[text_at(variable, "name")] = text_at(variable, "value");
    }
    return exec;
}

Status read_user(const Entry& user, AccessConfig& config) {
    STOKER_TRY_VOID(refuse(user, {"auth-provider"}));
    config.token = text_at(user.node, "token");
    config.token_file = absolute(user, "tokenFile");
    config.cert_file = absolute(user, "client-certificate");
    config.key_file = absolute(user, "client-key");
    config.username = text_at(user.node, "username");
    config.password = text_at(user.node, "password");
    config.impersonate_user = text_at(user.node, "as");
    if (const YAML::Node groups = user.node["as-groups"]; groups && groups.IsSequence()) {
        for (const YAML::Node& group : groups) {
            config.impersonate_groups.push_back(group.as<std::string>());
        }
    }
    if (user.node["exec"]) {
        config.exec = read_exec(user);
    }
    STOKER_TRY_VOID(read_data(user, "client-certificate-data", config.cert_pem));
    return read_data(user, "client-key-data", config.key_pem);
}

Result<AccessConfig> resolve(const Kubeconfig& all, const std::string& context) {
    const std::string name = context.empty() ? all.current_context : context;
    const auto missing = [](const char* what, const std::string& which) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("kubeconfig: no {} {:?}", what, which));
    };
    const auto chosen = all.contexts.find(name);
    if (chosen == all.contexts.end()) {
        return missing("context", name);
    }
    const std::string cluster_name = text_at(chosen->second.node, "cluster");
    const std::string user_name = text_at(chosen->second.node, "user");
    const auto cluster = all.clusters.find(cluster_name);
    if (cluster == all.clusters.end()) {
        return missing("cluster", cluster_name);
    }
    AccessConfig config;
    STOKER_TRY_VOID(read_cluster(cluster->second, config));
    if (!user_name.empty()) {
        const auto user = all.users.find(user_name);
        if (user == all.users.end()) {
            return missing("user", user_name);
        }
        STOKER_TRY_VOID(read_user(user->second, config));
    }
    if (const std::string ns = text_at(chosen->second.node, "namespace"); !ns.empty()) {
        config.ns = ns;
    }
    return config;
}

}  // namespace

Result<AccessConfig> parse_kubeconfig(
    const std::vector<KubeconfigText>& files, const std::string& context) {
    Kubeconfig all;
    for (const KubeconfigText& file : files) {
        try {
            STOKER_TRY_VOID(all.add(file));
        } catch (const YAML::Exception& error) {
            return fail(ErrorCode::kInvalidArgument, file.path + ": " + error.what());
        }
    }
    try {
        return resolve(all, context);
    } catch (const YAML::Exception& error) {
        return fail(ErrorCode::kInvalidArgument, std::string("kubeconfig: ") + error.what());
    }
}

Result<AccessConfig> load_kubeconfig(const std::string& paths, const std::string& context) {
    const auto read_file = system_doors().read_file;
    std::vector<KubeconfigText> files;
    for (std::size_t at = 0; at < paths.size();) {
        const auto end = std::min(paths.find(':', at), paths.size());
        const std::string path = paths.substr(at, end - at);
        if (auto text = read_file(path)) {
            files.push_back({std::filesystem::absolute(path).string(), *std::move(text)});
        }
        at = end + 1;
    }
    if (files.empty()) {
        return fail(ErrorCode::kNotFound, "no kubeconfig at " + paths);
    }
    return parse_kubeconfig(files, context);
}

}  // namespace stoker::control
