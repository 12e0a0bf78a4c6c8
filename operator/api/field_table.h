#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "operator/api/choices.h"

// Structs as tables of their members; field_codec.h reads and writes structs by them.
namespace stoker::control {

// Reads and writes a member by its C++ type.
struct AsItsType {};

// `As` is AsItsType, or a codec for this member with
//   void read(const JsonReader& json, const std::string& name, Member& value) const;
//   Json write(const Member& value) const;  // not needed if T is never written
template <class T, class Member, class As>
struct Field {
    const char* name;  // "a.b" is the member b of the object a
    Member T::*member;
    As as;
};

template <class T, class Member, class As = AsItsType>
constexpr Field<T, Member, As> field(const char* name, Member T::*member, As as = {}) {
    return {name, member, as};
}

// The table of a struct: a tuple of Fields, one per member.
template <class T>
inline constexpr std::tuple<> kFields{};

template <class T>
concept HasFields = std::tuple_size_v<std::remove_const_t<decltype(kFields<T>)>> >
0;

// Calls visit(field, member) for each member of `item` that is in its table.
template <class T, class Visit>
void for_each_field(T& item, Visit visit) {
    std::apply(
        [&](const auto&... fields) { (visit(fields, item.*(fields.member)), ...); },
        kFields<std::remove_const_t<T>>);
}

// The texts of an enum's values: the CRD's, or a table's own.
template <class E>
inline constexpr auto kTexts = kChoiceTexts<E>;

// Converts to any type in an unevaluated expression.
struct AnyValue {
    template <class T>
    operator T() const;  // NOLINT(google-explicit-constructor): its purpose
};

template <class T, std::size_t... I>
constexpr bool takes_members(std::index_sequence<I...>) {
    return requires {
        T{(static_cast<void>(I), AnyValue{})...};
    };
}

// Number of members of an aggregate: the most values that its braces accept.
template <class T, std::size_t Count = 32>
constexpr std::size_t member_count() {
    if constexpr (takes_members<T>(std::make_index_sequence<Count>{})) {
        return Count;
    } else {
        return member_count<T, Count - 1>();
    }
}

// A table with a field for every member. Fails to compile if the struct gets a member that has no
// line in the table.
template <class T, class... Member, class... As>
constexpr auto table(Field<T, Member, As>... fields) {
    static_assert(member_count<T>() == sizeof...(fields));
    return std::tuple{fields...};
}

}  // namespace stoker::control
