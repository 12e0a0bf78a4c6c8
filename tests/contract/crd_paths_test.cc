// The CRD of CachePool and the operator reject the same directories: the test evaluates the CRD's
// rules and the operator's on the same paths.

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "operator/core/spec/validate.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// One term of a rule: self.matches('...'), possibly negated.
struct Term {
    std::regex pattern;
    bool negated = false;
};

// Parses "self.matches('a') && !self.matches('b')"; unparsed text stays in `rest`.
std::vector<Term> terms_of(const std::string& rule, std::string& rest) {
    static const std::regex kTerm{R"((!?)self\.matches\('([^']*)'\)(\s*&&\s*)?)"};
    std::vector<Term> terms;
    for (std::sregex_iterator it{rule.begin(), rule.end(), kTerm}, end; it != end; ++it) {
        terms.push_back({std::regex{(*it)[2].str()}, (*it)[1] == "!"});
    }
    rest = std::regex_replace(rule, kTerm, "");
    return terms;
}

std::vector<Term> rules_of_the_crd() {
    const YAML::Node path = YAML::LoadFile(
        std::string{STOKER_SOURCE_DIR} +
        "/crds/stoker.dev_cachepools.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
                                           ["properties"]["spec"]["properties"]["volume"]
                                           ["properties"]["hostPath"]["properties"]["path"];
    std::vector<Term> terms;
    for (const YAML::Node& rule : path["x-kubernetes-validations"]) {
        std::string rest;
        const std::vector<Term> more = terms_of(rule["rule"].as<std::string>(), rest);
        EXPECT_EQ(rest.find_first_not_of(" \n"), std::string::npos) << "cannot parse: " << rest;
        terms.insert(terms.end(), more.begin(), more.end());
    }
    return terms;
}

bool crd_takes(const std::vector<Term>& terms, const std::string& path) {
    for (const Term& term : terms) {
        if (std::regex_search(path, term.pattern) == term.negated) {
            return false;
        }
    }
    return true;
}

bool operator_takes(const std::string& path) {
    CachePool pool = make_pool();
    pool.spec.host_path = path;
    return validate(pool).empty();
}

// Every path of up to three components, plain and in equivalent spellings.
std::vector<std::string> paths() {
    const std::vector<std::string> parts = {
        "bin",    "boot",  "dev",     "etc",        "home",       "lib",      "lib32",   "lib64",
        "libx32", "media", "mnt",     "opt",        "proc",       "root",     "run",     "sbin",
        "snap",   "srv",   "sys",     "tmp",        "usr",        "var",      "cache",   "lock",
        "log",    "spool", "cni",     "containerd", "containers", "crio",     "docker",  "dpkg",
        "etcd",   "k0s",   "kubelet", "rancher",    "rpm",        "systemd",  "stoker",  "nvme0n1",
        "..",     ".",     "",        "kubelet2",   "a b",        "\xC3\xBC", ".hidden", "data_1"};
    std::vector<std::string> result = {"", "/", "relative", "relative/etc"};
    std::vector<std::string> longer = {""};
    for (int length = 1; length <= 3; ++length) {
        std::vector<std::string> next;
        for (const std::string& parent : longer) {
            for (const std::string& part : parts) {
                next.push_back(parent + "/" + part);
            }
        }
        result.insert(result.end(), next.begin(), next.end());
        longer = length == 2
                     ? std::vector<std::string>{"/var/lib", "/var/log", "/opt/cni", "/mnt/x"}
                     : next;
    }
    for (const std::string path : {"/mnt/nvme/", "/mnt//nvme", "/mnt/nvme\n", "/mnt/nvme\n/x"}) {
        result.push_back(path);
    }
    return result;
}

TEST(CrdPaths, CrdAndOperatorRejectTheSameDirectories) {
    const std::vector<Term> terms = rules_of_the_crd();
    EXPECT_GE(terms.size(), 6U);
    std::size_t taken = 0;
    for (const std::string& path : paths()) {
        if (path.empty()) {
            continue;  // minLength
        }
        EXPECT_EQ(crd_takes(terms, path), operator_takes(path)) << "'" << path << "'";
        taken += operator_takes(path) ? 1 : 0;
    }
    EXPECT_GT(taken, 500U);
}

TEST(CrdPaths, BothAcceptDiskDirectoriesAndRejectSystemOnes) {
    const std::vector<Term> terms = rules_of_the_crd();
    for (const std::string path : {"/var/lib/stoker", "/mnt/nvme/stoker", "/data", "/srv/cache"}) {
        EXPECT_TRUE(crd_takes(terms, path) && operator_takes(path)) << path;
    }
    for (const std::string path :
         {"/etc", "/usr/local/x", "/var/lib/kubelet", "/var/lib", "/mnt"}) {
        EXPECT_FALSE(crd_takes(terms, path) || operator_takes(path)) << path;
    }
}

}  // namespace
}  // namespace stoker::control
