# Compiler settings in one interface target, `stoker_flags`; nothing is set globally except the language level.
option(STOKER_TESTS "Build the tests" ON)
set(STOKER_SANITIZE "" CACHE STRING "Sanitizers for every target, as for -fsanitize=")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# Line tables are enough for a stack trace, and save a quarter of the compile time of full debug information.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

# ccache hits across checkouts: it hashes paths relative to the checkout.
find_program(STOKER_CCACHE ccache)
if(STOKER_CCACHE)
    set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros "${STOKER_CCACHE}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
    set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
endif()

add_library(stoker_flags INTERFACE)
target_include_directories(stoker_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(stoker_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
    -Wnull-dereference -Werror -fno-omit-frame-pointer
    # Keeps absolute source paths out of object files.
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
# cpprestsdk defines a macro `U` that breaks Boost and gRPC headers unless this is set everywhere.
target_compile_definitions(stoker_flags INTERFACE
    _TURN_OFF_PLATFORM_STRING STOKER_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Boost 1.74 supports C++20 coroutines with g++ only.
    target_compile_definitions(stoker_flags INTERFACE BOOST_ASIO_HAS_CO_AWAIT BOOST_ASIO_HAS_STD_COROUTINE)
endif()
if(STOKER_SANITIZE)
    target_compile_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE})
    if(STOKER_SANITIZE MATCHES "thread")
        # Boost.Asio has fences that g++'s thread sanitizer does not model; g++ warns of each.
        target_compile_options(stoker_flags INTERFACE -Wno-tsan)
    endif()
    if(STOKER_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # g++'s check of an object's type opens a pipe. Without descriptors, as in some tests, it reports valid objects.
        target_compile_options(stoker_flags INTERFACE -fno-sanitize=vptr)
    endif()
endif()
