#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

// Structs as tables of their members, from which they are printed and read. Private to
// operator/core/allocation.
namespace stoker::control {

template <class T, class Member>
struct Field {
    const char* name;
    Member T::*member;
};

template <class T, class Member>
constexpr Field<T, Member> field(const char* name, Member T::*member) {
    return {name, member};
}

// The table of a struct: a tuple of Fields, one line for each member.
template <class T>
inline constexpr std::tuple<> kFields{};

template <class T>
concept HasFields = std::tuple_size_v<std::remove_const_t<decltype(kFields<T>)>> >
0;

// Calls visit(name, member) for each member of `item` that is in its table.
template <class T, class Visit>
void for_each_field(T& item, Visit visit) {
    std::apply(
        [&](const auto&... fields) { (visit(fields.name, item.*(fields.member)), ...); },
        kFields<std::remove_const_t<T>>);
}

// Stands for a value of any type where it is not evaluated.
struct AnyValue {
    template <class T>
    operator T() const;  // NOLINT(google-explicit-constructor): what it is for
};

template <class T, std::size_t... I>
constexpr bool takes_members(std::index_sequence<I...>) {
    return requires {
        T{(static_cast<void>(I), AnyValue{})...};
    };
}

// How many members an aggregate has: the most values that its braces take.
template <class T, std::size_t Count = 32>
constexpr std::size_t member_count() {
    if constexpr (takes_members<T>(std::make_index_sequence<Count>{})) {
        return Count;
    } else {
        return member_count<T, Count - 1>();
    }
}

// False when somebody gave the struct a member and the table no line.
template <class T>
inline constexpr bool kIsWhole =
    member_count<T>() == std::tuple_size_v<std::remove_const_t<decltype(kFields<T>)>>;

}  // namespace stoker::control
