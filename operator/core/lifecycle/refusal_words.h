#pragma once

#include <string>
#include <string_view>

namespace stoker::control {

// What the API server said when it refused a Job, for the owner of the TrainingJob: fields that it
// does not know by their names there ("spec.podTemplate.spec.affinity.x: unknown field"), anything
// else in its own words, cut at 1024 bytes. Pure.
std::string refusal_words(std::string_view message);

}  // namespace stoker::control
