#pragma once

#include <string>

namespace stoker::domain {

// Where samples are, for comparison.
struct SourcePlace {
    std::string uri;       // s3://BUCKET/PREFIX or file:///DIRECTORY
    std::string endpoint;  // of s3://: URL of the server; empty: Amazon's
};

// Whether all of `inner` is in the folder `outer`, or is `outer`. Endpoints are compared by host and
// port, those of Amazon's regions are one server, and directories without repeated slashes. Endpoints of
// two names of one server are not recognized. Pure.
bool lies_in(const SourcePlace& inner, const SourcePlace& outer);

}  // namespace stoker::domain
