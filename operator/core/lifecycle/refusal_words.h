#pragma once

#include <string>
#include <string_view>

namespace stoker::control {

// The API server's reason for refusing a Job, for the owner of the TrainingJob. Unknown fields get
// their TrainingJob path ("spec.podTemplate.spec.affinity.x: unknown field"); other messages are
// quoted, cut at 1024 bytes. Pure.
std::string refusal_words(std::string_view message);

}  // namespace stoker::control
