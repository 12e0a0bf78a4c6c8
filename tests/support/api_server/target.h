#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stoker::test {

// A parsed request target:
// /apis/<group>/<version>/namespaces/<ns>/<plural>/<name>/<subresource>?query. `plural` is empty
// for all other targets (/version, /apis/<group>).
struct Target {
    std::string path;
    std::string group;
    std::string version;
    std::string ns;
    std::string plural;
    std::string name;
    std::string subresource;
    std::map<std::string, std::string> query;
};

Target parse_target(std::string_view target);

}  // namespace stoker::test
