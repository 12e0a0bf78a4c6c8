#pragma once

#include <memory>
#include <string>

#include "sidecar/s3/object_answer.h"
#include "sidecar/s3/places.h"
#include "sidecar/s3/s3_call.h"

// Decides which requests this node answers itself, from the manifest alone.
namespace stoker::s3 {

struct Route {
    enum class Kind : std::uint8_t { kForward, kList, kObject, kNotYet };

    Kind kind = Kind::kForward;
    std::string list;  // for kList: the XML page
    // For kObject: the dataset, its files and the object. Also set for kForward if the key is in
    // the manifest, so that the forwarded request is counted as a read from the origin.
    attached::CachedDataset* dataset = nullptr;
    std::shared_ptr<attached::DatasetFiles> files;
    domain::StoredObject object;  // its texts point into `files`
    ObjectFacts facts;            // also points into `files`
    ObjectAnswer answer;          // for kObject
};

// Decides: GET and HEAD of an object in the manifest, and ListObjectsV2 inside a dataset, are
// answered here. Other requests are forwarded: with other parameters, several ranges or a
// customer's encryption key, and for keys that the manifest lacks or that this pod has written.
// Records such writes. kNotYet: a sample in a chunk cannot be found before the sidecar has
// announced a revision, and the origin has no object of its name.
Route route_call(const S3Call& call, const Places& places);

}  // namespace stoker::s3
