#pragma once

#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "common/base/result.h"

// Private to operator/sidecars: helpers for services that read messages as bytes, so that caller
// and size are checked before parsing.
namespace stoker::control {

// The caller's bearer token. kForbidden: none, several, or too long.
Result<std::string> bearer_token(const grpc::CallbackServerContext& call);

grpc::Status to_grpc(const Error& error);

// Maps the authenticator's error to a gRPC status.
grpc::Status refuse_token(const Error& error);

// nullopt: not a message of that type. Empties the buffer.
template <class Message>
std::optional<Message> parse_wire(grpc::ByteBuffer& bytes) {
    std::optional<Message> message(std::in_place);
    if (!grpc::SerializationTraits<Message>::Deserialize(&bytes, &*message).ok()) {
        message.reset();
    }
    return message;
}

template <class Message>
grpc::ByteBuffer to_wire(const Message& message) {
    grpc::ByteBuffer bytes;
    bool owned = false;
    grpc::SerializationTraits<Message>::Serialize(message, &bytes, &owned);
    return bytes;
}

}  // namespace stoker::control
