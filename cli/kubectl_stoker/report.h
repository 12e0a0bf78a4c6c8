#pragma once

#include <string>
#include <vector>

#include "cli/kubectl_stoker/why.h"
#include "operator/api/pod.h"

namespace stoker::cli {

// An Event about the job.
struct ReportEvent {
    std::string time;  // as the API server wrote it
    std::string type;  // Normal, Warning
    std::string reason;
    std::string note;
    std::int64_t count = 1;
};

// Reads an Event of events.k8s.io/v1, or of v1. Absent fields are empty.
ReportEvent read_event(const control::Json& json);

struct ReportFacts {
    WhyFacts why;
    std::vector<control::Pod> pods;     // the job's pods
    std::vector<ReportEvent> events;    // by time
    std::vector<std::string> left_out;  // one sentence for each thing that could not be read
    WallTime made_at{};
};

// One self-contained HTML page: no script, no other resources, plots as SVG. All texts from the
// cluster are escaped. Pure.
std::string report_html(const ReportFacts& facts);

}  // namespace stoker::cli
