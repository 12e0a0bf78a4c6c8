#include "common/http/proxy.h"

#include <initializer_list>

namespace stoker::http {

const std::string& ProxySettings::for_url(std::string_view url) const {
    return url.starts_with("https://") ? https : http;
}

ProxySettings proxies_from_environment(const std::function<const char*(const char*)>& environment) {
    const auto first_of = [&environment](std::initializer_list<const char*> names) {
        for (const char* name : names) {
            const char* value = environment(name);
            if (value != nullptr && *value != '\0') {
                return std::string{value};
            }
        }
        return std::string{};
    };
    ProxySettings settings;
    settings.http = first_of({"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"});
    settings.https = first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
    settings.except = first_of({"no_proxy", "NO_PROXY"});
    return settings;
}

}  // namespace stoker::http
