#pragma once

#include <vector>

#include "operator/core/workload/build_pod.h"

// Variables with which the trainer reads the origins of its datasets itself. Pure.
namespace stoker::control {

// Adds AWS_ACCESS_KEY_ID, ... for S3; nothing without a Secret.
void add_credentials(const JobInput& input, std::vector<EnvVar>& env);

// Adds STOKER_HTTP_TOKEN, ... for web servers of the job's namespace, whose Secret has a token, or user name
// and password.
void add_http_credentials(const JobInput& input, std::vector<EnvVar>& env);

}  // namespace stoker::control
