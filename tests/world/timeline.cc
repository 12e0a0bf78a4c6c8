#include "tests/world/timeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tests/world/schedule.h"

namespace stoker::world {

namespace {

constexpr double kWidth = 1100;  // of a chart, in pixels
constexpr double kHeight = 120;

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
    return fmt::format(
        R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)",
        x1,
        y1,
        x2,
        y2,
        colour);
}

// Describes who leads. The number tells apart two periods in which one process leads.
std::string leads_of(const Moment& moment) {
    return moment.leader.empty() ? "nobody leads"
                                 : fmt::format(
                                       "{} leads (lead {}){}",
                                       moment.leader,
                                       moment.lead,
                                       moment.is_ready ? "" : ", without the listing");
}

}  // namespace

void Timeline::on_fault(Duration at, std::string place, std::string_view fault) {
    faults_.push_back({at, std::move(place), std::string{fault}});
}

void Timeline::on_group(Duration at, std::string_view members) {
    groups_.emplace_back(at, fmt::format("group    {}", members));
}

std::vector<std::string> Timeline::nodes() const {
    std::vector<std::string> found;
    for (const Moment& moment : moments) {
        if (std::ranges::find(found, moment.node) == found.end()) {
            found.push_back(moment.node);
        }
    }
    return found;
}

std::string Timeline::text() const {
    std::vector<std::pair<Duration, std::string>> lines = groups_;
    std::map<std::string, Moment> last;
    for (const Moment& moment : moments) {
        Moment& before = last[moment.node];
        if (leads_of(moment) != leads_of(before)) {
            lines.emplace_back(
                moment.at,
                fmt::format(
                    "{:<8} {}; before: {} kB fetched, {} kB from peers, {} kB resident, {} "
                    "kB in the window",
                    moment.node,
                    leads_of(moment),
                    before.fetched.count() / 1000,
                    before.from_peers.count() / 1000,
                    before.resident.count() / 1000,
                    before.window.count() / 1000));
        }
        if (moment.grant != before.grant) {
            lines.emplace_back(
                moment.at,
                fmt::format("{:<8} grant {} kB", moment.node, moment.grant.count() / 1000));
        }
        before = moment;
    }
    for (const FaultEvent& event : faults_) {
        lines.emplace_back(event.at, fmt::format("{:<8} fault: {}", event.place, event.fault));
    }
    std::ranges::stable_sort(lines, {}, [](const auto& entry) { return entry.first; });
    std::string text;
    for (const auto& [at, words] : lines) {
        text += fmt::format("{:8.1f} {}\n", seconds_of(at), words);
    }
    return text;
}

std::string Timeline::chart(const std::string& node, double width_s) const {
    std::uint64_t most = 1;
    for (const Moment& moment : moments) {
        most = std::max({most, moment.grant.count(), (moment.resident + moment.window).count()});
    }
    const auto x = [width_s](Duration at) { return seconds_of(at) / width_s * kWidth; };
    const auto y = [most](Bytes bytes) {
        return kHeight - 100 * static_cast<double>(bytes.count()) / static_cast<double>(most);
    };
    std::string body;
    std::uint64_t lead = 0;
    for (const Moment& moment : moments) {
        if (moment.node != node) {
            continue;
        }
        const double at = x(moment.at);
        if (std::exchange(lead, moment.lead) != moment.lead) {
            body += line(at, 0, at, kHeight, "#ccc");
            body += fmt::format(
                R"(<text x="{:.1f}" y="{:.0f}">{}</text>)",
                at,
                kHeight + 12,
                lead == 0 ? "" : fmt::format("{}: {}", lead, moment.leader));
        }
        body += line(at, kHeight, at, y(moment.resident), "#48c");
        body += line(at, y(moment.resident), at, y(moment.resident + moment.window), "#8cf");
        body += line(at - 1, y(moment.grant), at + 2, y(moment.grant), "#c40");
    }
    for (const FaultEvent& event : faults_) {
        if (event.place == node || event.place == "origin") {
            body += fmt::format(
                R"(<circle cx="{:.1f}" cy="{}" r="3" fill="{}"><title>{:.1f} s: {}</title></circle>)",
                x(event.at),
                event.place == "origin" ? 14 : 6,
                event.place == "origin" ? "#a3a" : "#d22",
                seconds_of(event.at),
                event.fault);
        }
    }
    return fmt::format(
        "<h2>{}</h2>\n<svg width=\"{}\" height=\"{}\">{}</svg>\n",
        node,
        kWidth + 60,
        kHeight + 18,
        body);
}

std::string Timeline::html(const std::string& title) const {
    const double width_s = moments.empty() ? 1 : std::max(1.0, seconds_of(moments.back().at));
    std::string page = fmt::format(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
        "<style>body{{font:13px sans-serif}} text{{font-size:9px}} pre{{font-size:11px}}</style>\n"
        "<h1>{0}</h1>\n<p>0 to {1:.0f} virtual s. Dark blue: resident bytes; light blue: window; "
        "red "
        "line: grant; red dot: a fault of the node; purple dot: of the origin; below: number "
        "and process of the lead that begins there.</p>\n",
        title,
        width_s);
    for (const std::string& node : nodes()) {
        page += chart(node, width_s);
    }
    return page + "<pre>\n" + text() + "</pre>\n";
}

}  // namespace stoker::world
