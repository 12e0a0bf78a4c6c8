#pragma once

#include <string>

namespace stoker::domain {

// Where samples are stored, to compare two places.
struct SourcePlace {
    std::string uri;       // s3://BUCKET/PREFIX or file:///DIRECTORY
    std::string endpoint;  // of s3://: URL of the server; empty: Amazon's
};

// Whether `inner` is the folder `outer` or lies in it. Endpoints are compared by host and port; all
// regions of Amazon count as one server; repeated slashes in directories are ignored. Two names of
// one server are not recognized as equal. Pure.
bool lies_in(const SourcePlace& inner, const SourcePlace& outer);

}  // namespace stoker::domain
