#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/advise/advise_options.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/meta.h"

namespace stoker::cli {

// Connection options; the flags have kubectl's names and meaning.
struct ConnectOptions {
    std::string kubeconfig;  // "": kubectl's default
    std::string context;
    std::string as_user;
    std::vector<std::string> as_groups;
    Duration request_timeout = std::chrono::seconds{30};
    std::string operator_namespace = "stoker-system";
    std::string lease_name = "stoker-operator";
    std::string operator_pod;   // "": the Lease's holder
    std::string operator_port;  // "": control::kDebugPort
};

// One --nominal of what-if: "NAMESPACE=BYTES".
struct NominalOption {
    std::string ns;
    Bytes nominal{};
};

struct Options {
    std::string command;  // one of command_names()
    ConnectOptions connect;
    std::optional<std::string> ns;  // none: the kubeconfig context's
    bool all_namespaces = false;
    bool json = false;
    bool help = false;

    bool watch = false;                           // top
    Duration interval = std::chrono::seconds{2};  // top --watch
    std::string job;                              // why, report, advise: without "tj/"
    std::string pod;                              // advise: without "pod/"; empty: a job or a trace
    std::string report_path;                      // report; empty: standard output
    AdviseOptions advise;                         // of --trace
    std::string dataset;                          // where: without "dset/"; empty: all
    std::optional<Bytes> add;                     // what-if
    std::optional<Bytes> remove;                  // what-if
    std::string pool;                             // what-if
    std::vector<std::string> deleted;             // what-if: "NAME" or "NAMESPACE/NAME"
    std::vector<NominalOption> nominal;           // what-if
};

// Parses the arguments after `kubectl stoker`. kInvalidArgument names the mistake and lists the
// valid choices.
Result<Options> parse_options(const std::vector<std::string_view>& arguments);

// Help of one command; "": all commands.
std::string help_text(std::string_view command);

// "top" and so on, in the order of the help.
std::vector<std::string> command_names();

// Every flag of a command as "--name" or "-n", for completion.
std::vector<std::string> flag_names(std::string_view command);

// Accepts "tj/NAME", "trainingjob/NAME", "trainingjobs.stoker.dev/NAME" or "NAME".
// kInvalidArgument: another kind.
Result<std::string> job_name(std::string_view word);

// As job_name(), for "dset/NAME", "dataset/NAME", "datasets.stoker.dev/NAME" or "NAME".
Result<std::string> dataset_name(std::string_view word);

// As job_name(), for "pod/NAME", "pods/NAME", "po/NAME"; the kind is required. nullopt: another
// kind.
std::optional<std::string> pod_name(std::string_view word);

// Resolves "NAMESPACE/NAME", or "NAME" in namespace `ns`.
control::ObjectKey key_of(const std::string& name, const std::string& ns);

}  // namespace stoker::cli
