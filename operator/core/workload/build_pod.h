#pragma once

#include "operator/api/sidecar_config.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

// Paths inside the containers, the same in sidecar and trainer.
inline constexpr std::string_view kRunDirectory = "/stoker/run";    // sockets
inline constexpr std::string_view kNodeDirectory = "/stoker/node";  // + "/" + dataset name
inline constexpr std::string_view kOriginDirectory = "/stoker/origin";
inline constexpr std::string_view kTokenDirectory = "/stoker/token";
inline constexpr std::string_view kCaDirectory = "/stoker/ca";
inline constexpr std::string_view kCredentialsDirectory = "/stoker/credentials";
inline constexpr std::string_view kSocketPath = "/stoker/run/stoker.sock";
inline constexpr std::string_view kTokenAudience = "stoker.dev";

// The pod of one rank: sidecar first, then the S3 endpoint if a dataset has access S3, stoker-files
// if one has access Files, then the user's init containers, then the trainer. Part of build_job().
//
// The node directory of a dataset, <pool>/<namespace of the dataset>/<uid>, is mounted as two
// inline volumes of the node program (docs/adr/0008): the whole directory for the sidecar, its
// samples read-only for the trainer. With access Files the trainer also has the samples as files
// (docs/adr/0023), and only stoker-files has the socket that their server needs. For a Dataset of
// another namespace (docs/adr/0012) every container gets only the samples; the sidecar also gets
// the folder with the leader's socket for this namespace. Reads that bypass the cache use the
// Secret of that name in the pod's own namespace, if it exists.
PodManifest build_pod(const JobInput& input);

// The pod of a filler: only the sidecar, with the whole node directory. `input` has one dataset, in
// the namespace of its job. Part of build_filler().
PodManifest build_filler_pod(const JobInput& input);

// The additions to the pod of another controller (`input.foreign` is set): sidecar, S3 endpoint,
// stoker-files, their volumes, and the trainer with the variables and mounts of build_pod().
// Variables for rendezvous, /dev/shm and everything else of the pod stay with its own controller.
PodManifest build_foreign_pod(const JobInput& input);

// The configuration of the sidecar, of the S3 endpoint and of stoker-files.
SidecarConfig sidecar_config(const JobInput& input);

}  // namespace stoker::control
