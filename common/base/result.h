#pragma once

#include <utility>

#include <tl/expected.hpp>

#include "common/base/error.h"

namespace stoker {

// A value or an Error. Ignoring a returned Result is a compile error in this project; dereferencing
// a failed one is undefined behaviour, so check first. Names follow std::expected, which will
// replace it with C++23.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
    using Base = tl::expected<T, Error>;

public:
    using Base::Base;

    // Implicit by design: results of map() and and_then() convert back.
    Result(Base base)
        : Base(std::move(base)) {}  // NOLINT(google-explicit-constructor): see above
};

using Status = Result<void>;

// `return fail(ErrorCode::kNotFound, "no such dataset");` in any function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}

}  // namespace stoker

#define STOKER_CONCAT_INNER(a, b) a##b
#define STOKER_CONCAT(a, b) STOKER_CONCAT_INNER(a, b)

// STOKER_TRY(auto segment, open_segment(path)): declares `segment`, or returns the error to the
// caller.
#define STOKER_TRY(declaration, expression) \
    STOKER_TRY_INNER(declaration, expression, STOKER_CONCAT(stoker_result_, __LINE__))
#define STOKER_TRY_INNER(declaration, expression, name) \
    auto name = (expression);                           \
    if (!name.has_value()) {                            \
        return ::stoker::fail(std::move(name).error()); \
    }                                                   \
    declaration = *std::move(name)

// STOKER_TRY_VOID(sync(file)): returns the error of a Status to the caller.
#define STOKER_TRY_VOID(expression)                                  \
    do {                                                             \
        auto stoker_status = (expression);                           \
        if (!stoker_status.has_value()) {                            \
            return ::stoker::fail(std::move(stoker_status).error()); \
        }                                                            \
    } while (false)
