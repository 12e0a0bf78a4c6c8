#include "cli/kubectl_stoker/options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/quantity.h"
#include "common/flags/flags.h"

namespace stoker::cli {

namespace {

struct Command {
    std::string_view name;
    std::string_view words;
    std::string_view meaning;
    std::string_view details;
};

constexpr std::array kCommands{
    Command{
        "top",
        "",
        "jobs by the GPU-seconds that the cache saves them",
        "Reads the status of TrainingJobs; needs no other right than to list them.\n"
        "\n"
        "  kubectl stoker top               the jobs of the namespace\n"
        "  kubectl stoker top -A --watch    all jobs, live\n"},
    Command{
        "why",
        " tj/NAME",
        "why a job has the cache bytes that it has, and what would change it",
        "Asks the leading operator for its decision and its input, and decides again. Users "
        "who may "
        "not\n"
        "ask it get what the job's status says.\n"
        "\n"
        "  kubectl stoker why tj/resnet\n"
        "  kubectl stoker why resnet -n team-a --json\n"},
    Command{
        "what-if",
        "",
        "what every job would gain or lose if the cluster were different",
        "Runs the operator's planner over what the operator sees now, with the changes made and\n"
        "every move carried out. Nothing is changed in the cluster.\n"
        "\n"
        "  kubectl stoker what-if --add 200Gi --pool nvme        over all nodes of the pool\n"
        "  kubectl stoker what-if --delete tj/resnet -n team-a\n"
        "  kubectl stoker what-if --nominal team-a=2Ti --pool nvme\n"},
    Command{
        "advise",
        " [tj/NAME | pod/NAME]",
        "what a cache would be worth, of which size, under which contract",
        "With --trace FILE: replays the reads of a program; needs neither a cluster nor Stoker.\n"
        "Else: uses the operator's measurements of a job, named by itself or by one of its pods.\n"
        "\n"
        "  kubectl stoker advise --trace trace.txt --origin-bandwidth 1Gi --origin-latency 20ms\n"
        "  kubectl stoker advise tj/resnet -n team-a -o json\n"},
    Command{
        "report",
        " tj/NAME",
        "one HTML page about a job: grant, reasons, plots, pods, events",
        "Reads what `why` reads, the job's pods and its Events. The page needs no other file.\n"
        "\n"
        "  kubectl stoker report tj/resnet -o report.html\n"},
    Command{
        "quota",
        "",
        "cache quotas as a tree: nominal, used, borrowed, lent",
        "Reads the status of CacheQuotas, CachePools and TrainingJobs.\n"
        "\n"
        "  kubectl stoker quota -A\n"},
    Command{
        "where",
        " [dset/NAME]",
        "which nodes hold how much of a dataset",
        "Reads the status of Datasets; needs no other right than to list them.\n"
        "\n"
        "  kubectl stoker where dset/imagenet\n"
        "  kubectl stoker where -A          all datasets\n"}};

const Command* find_command(std::string_view name) {
    const auto found = std::ranges::find(kCommands, name, &Command::name);
    return found == kCommands.end() ? nullptr : &*found;
}

// Parses "30s", "2m", "500ms" or "30" (seconds).
Result<Duration> parse_duration(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, Duration>, 5> kUnits{
        {{"ms", std::chrono::milliseconds{1}},
         {"s", std::chrono::seconds{1}},
         {"m", std::chrono::minutes{1}},
         {"h", std::chrono::hours{1}},
         {"", std::chrono::seconds{1}}}};
    for (const auto& [suffix, unit] : kUnits) {
        if (!text.ends_with(suffix)) {
            continue;
        }
        STOKER_TRY(
            const std::uint64_t count,
            parse_count("duration", text.substr(0, text.size() - suffix.size())));
        return unit * static_cast<Duration::rep>(std::min<std::uint64_t>(count, 86'400'000));
    }
    return Duration::zero();
}

Status set_output(Options& options, std::string_view value) {
    if (value != "json") {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is not an output format; use json", value));
    }
    options.json = true;
    return {};
}

Result<std::string> parse_text(std::string_view value) {
    return std::string{value};
}

Result<NominalOption> parse_nominal(std::string_view value) {
    const std::size_t equals = value.find('=');
    if (equals == std::string_view::npos || equals == 0) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not NAMESPACE=BYTES", value));
    }
    STOKER_TRY(const Bytes nominal, parse_bytes(value.substr(equals + 1)));
    return NominalOption{std::string{value.substr(0, equals)}, nominal};
}

std::vector<Flag> what_if_flags(Options& options) {
    return {
        {"add",
         "200Gi",
         "add capacity to --pool, in total over its nodes",
         read_into(options.add, stoker::parse_bytes)},
        {"remove",
         "200Gi",
         "remove capacity from --pool, in total over its nodes",
         read_into(options.remove, stoker::parse_bytes)},
        {"pool", "NAME", "the CachePool of --add, --remove and --nominal", text_into(options.pool)},
        {"delete",
         "tj/NAME",
         "remove this job (or tj/NAMESPACE/NAME); may be repeated",
         read_into(options.deleted, job_name)},
        {"nominal",
         "NAMESPACE=BYTES",
         "set the namespace's nominal quota in --pool; may be repeated",
         read_into(options.nominal, parse_nominal)}};
}

FlagGroup command_flags(Options& options, std::string_view command) {
    FlagGroup group{"Flags:", {}};
    if (command == "top") {
        group.flags.push_back(
            {"watch", "", "refresh until Ctrl-C", switch_into(options.watch), 'w'});
        group.flags.push_back(
            {"interval",
             "2s",
             "time between refreshes",
             read_into(options.interval, parse_duration)});
    }
    if (command == "what-if") {
        group.flags = what_if_flags(options);
    }
    if (command == "report") {
        group.flags.push_back(
            {"output",
             "FILE",
             "where to write the page (default: standard output)",
             text_into(options.report_path),
             'o'});
    } else {
        group.flags.push_back({"json", "", "print JSON", switch_into(options.json)});
        group.flags.push_back(
            {"output",
             "json",
             "the same as --json",
             [&options](std::string_view value) { return set_output(options, value); },
             'o'});
    }
    group.flags.push_back({"help", "", "this text", switch_into(options.help), 'h'});
    return group;
}

FlagGroup cluster_flags(Options& options) {
    ConnectOptions& connect = options.connect;
    return {
        "As with kubectl:",
        {{"namespace", "NAME", "default: the context's", text_into(options.ns), 'n'},
         {"all-namespaces",
          "",
          "list objects of all namespaces",
          switch_into(options.all_namespaces),
          'A'},
         {"kubeconfig",
          "FILE",
          "default: $KUBECONFIG, else ~/.kube/config",
          text_into(connect.kubeconfig)},
         {"context", "NAME", "context of the kubeconfig", text_into(connect.context)},
         {"as", "USER", "impersonate this user", text_into(connect.as_user)},
         {"as-group",
          "GROUP",
          "impersonate this group, too; may be repeated",
          read_into(connect.as_groups, parse_text)},
         {"request-timeout",
          "30s",
          "time limit of each request; 0: none",
          read_into(connect.request_timeout, parse_duration)}}};
}

FlagGroup operator_flags(Options& options) {
    ConnectOptions& connect = options.connect;
    return {
        "Where the operator is:",
        {{"operator-namespace",
          "NAME",
          "default: stoker-system",
          text_into(connect.operator_namespace)},
         {"lease", "NAME", "default: stoker-operator", text_into(connect.lease_name)},
         {"operator-pod",
          "NAME",
          "the operator's pod, if leader election is off",
          text_into(connect.operator_pod)},
         {"operator-port",
          "PORT",
          "port of the operator's debug pages (default: 8443)",
          text_into(connect.operator_port)}}};
}

std::vector<FlagGroup> groups_of(Options& options, std::string_view command) {
    std::vector<FlagGroup> groups{command_flags(options, command)};
    if (command == "advise") {
        groups.push_back(advise_flags(options.advise));
    }
    groups.push_back(cluster_flags(options));
    if (command != "top" && command != "quota" && command != "where") {
        groups.push_back(operator_flags(options));
    }
    return groups;
}

// `advise` needs a trace or one object, not both.
Status check_advise(Options& options, const std::vector<std::string_view>& words) {
    if (words.empty() == options.advise.trace_path.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "advise about what? Say tj/NAME, pod/NAME or --trace FILE, one of them");
    }
    if (words.empty()) {
        return {};
    }
    if (const auto pod = pod_name(words[0])) {
        options.pod = *pod;
        return {};
    }
    STOKER_TRY(options.job, job_name(words[0]));
    return {};
}

Status check_words(Options& options, const std::vector<std::string_view>& words) {
    const std::string& command = options.command;
    const bool needs_job = command == "why" || command == "report";
    const std::size_t most = needs_job || command == "where" || command == "advise" ? 1 : 0;
    if (needs_job && words.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("which job? kubectl stoker {} tj/NAME", command));
    }
    if (words.size() > most) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is one word too many for {}", words[most], command));
    }
    if (command == "advise") {
        return check_advise(options, words);
    }
    if (needs_job) {
        STOKER_TRY(options.job, job_name(words[0]));
    } else if (!words.empty()) {
        STOKER_TRY(options.dataset, dataset_name(words[0]));
    }
    return {};
}

Status check_changes(const Options& options) {
    if (options.command != "what-if") {
        return {};
    }
    const bool needs_pool = options.add || options.remove || !options.nominal.empty();
    if (!needs_pool && options.deleted.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "what if what? Say --add BYTES --pool NAME, --delete tj/NAME or --nominal "
            "NAMESPACE=BYTES --pool NAME");
    }
    if (needs_pool && options.pool.empty()) {
        return fail(ErrorCode::kInvalidArgument, "in which pool? Say --pool NAME");
    }
    return {};
}

std::string overview() {
    std::string text =
        "Explains what Stoker's cache does for whom.\n\nUsage: kubectl stoker COMMAND [flags]\n\n";
    for (const Command& command : kCommands) {
        text += fmt::format("  {:10}{}\n", command.name, command.meaning);
    }
    return text + "\nkubectl stoker COMMAND --help says more; kubectl stoker version.\n";
}

using KindNames = std::array<std::string_view, 5>;

// `kinds`: the kind's names, the short one first.
Result<std::string> object_name(
    std::string_view word, const KindNames& kinds, std::string_view kind, std::string_view noun) {
    const std::size_t slash = word.find('/');
    const std::string_view name = slash == std::string_view::npos ? word : word.substr(slash + 1);
    if (slash != std::string_view::npos &&
        std::ranges::find(kinds, word.substr(0, slash)) == kinds.end()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is no {}; say {}/NAME", word, kind, kinds.front()));
    }
    if (name.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' names no {}", word, noun));
    }
    return std::string{name};
}

}  // namespace

Result<std::string> job_name(std::string_view word) {
    constexpr KindNames kKinds{
        "tj", "trainingjob", "trainingjobs", "trainingjobs.stoker.dev", "trainingjob.stoker.dev"};
    return object_name(word, kKinds, "TrainingJob", "job");
}

Result<std::string> dataset_name(std::string_view word) {
    constexpr KindNames kKinds{
        "dset", "dataset", "datasets", "datasets.stoker.dev", "dataset.stoker.dev"};
    return object_name(word, kKinds, "Dataset", "dataset");
}

std::optional<std::string> pod_name(std::string_view word) {
    for (const std::string_view kind : {"pod/", "pods/", "po/"}) {
        if (word.starts_with(kind) && word.size() > kind.size()) {
            return std::string{word.substr(kind.size())};
        }
    }
    return std::nullopt;
}

control::ObjectKey key_of(const std::string& name, const std::string& ns) {
    const std::size_t slash = name.find('/');
    return slash == std::string::npos
               ? control::ObjectKey{ns, name}
               : control::ObjectKey{name.substr(0, slash), name.substr(slash + 1)};
}

Result<Options> parse_options(const std::vector<std::string_view>& arguments) {
    Options options;
    options.help = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
                   arguments[0] == "help";
    if (options.help) {
        return options;
    }
    const Command* command = find_command(arguments[0]);
    if (command == nullptr) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "no command '{}'; there are: {}", arguments[0], fmt::join(command_names(), ", ")));
    }
    options.command = command->name;
    const std::vector<FlagGroup> groups = groups_of(options, options.command);
    STOKER_TRY(
        const std::vector<std::string_view> words,
        parse_words(groups, {arguments.begin() + 1, arguments.end()}));
    if (options.help) {
        return options;
    }
    STOKER_TRY_VOID(check_words(options, words));
    STOKER_TRY_VOID(check_changes(options));
    return options;
}

std::string help_text(std::string_view command) {
    const Command* found = find_command(command);
    if (found == nullptr) {
        return overview();
    }
    Options unused;
    return fmt::format(
        "{}{}.\n\n{}\nUsage: kubectl stoker {}{} [flags]\n{}",
        static_cast<char>(found->meaning.front() - 'a' + 'A'),
        found->meaning.substr(1),
        found->details,
        found->name,
        found->words,
        flag_help(groups_of(unused, command)));
}

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const Command& command : kCommands) {
        names.emplace_back(command.name);
    }
    return names;
}

std::vector<std::string> flag_names(std::string_view command) {
    Options unused;
    std::vector<std::string> result;
    for (const FlagGroup& group : groups_of(unused, command)) {
        for (const Flag& flag : group.flags) {
            result.push_back("--" + flag.name);
        }
    }
    return result;
}

}  // namespace stoker::cli
