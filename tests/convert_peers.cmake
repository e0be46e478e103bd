# The peers of `trnbench convert` that are compiled here, each into an object of its own, for this very machine and at
# full optimisation, so that they are at their best. Plain C always; the others when TRN_PEERS, or the environment
# variable of that name, is a directory with checkouts of
#
#     ml_dtypes   https://github.com/jax-ml/ml_dtypes (headers), and of
#     eigen       https://gitlab.com/libeigen/eigen, because ml_dtypes needs more than the Eigen 3.4.0 of Debian
#     cpfloat     https://github.com/north-numerical-computing/cpfloat with its submodule deps/pcg-c

set(TRN_PEERS "$ENV{TRN_PEERS}" CACHE PATH "directory with ml_dtypes/, eigen/ and cpfloat/, peers of trnbench convert")
find_program(CLANGXX clang++)
find_program(GXX g++)

# convert_peer(NAME SOURCE COMPILER FLAGS...): builds the object, and trnbench knows it by HAVE_PEER_NAME.
function(convert_peer name source compiler)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/convert_peer_${name}.o")
    add_custom_command(OUTPUT "${object}" DEPENDS "${root}/bench/peers/${source}" "${root}/bench/peers/convert_peer.h"
        COMMAND "${compiler}" ${ARGN} -O3 -march=native -c "${root}/bench/peers/${source}" -o "${object}" VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(trnbench_parts PRIVATE "${object}")
    target_compile_definitions(trnbench_parts PRIVATE HAVE_PEER_${name}=1)
    message(STATUS "peer of trnbench convert: ${name}")
endfunction()

set(peer_compiler "${CMAKE_C_COMPILER}")
if(CLANG)
    set(peer_compiler "${CLANG}")
endif()
convert_peer(PLAIN convert_plain.c "${peer_compiler}" -std=c11 ${TRN_WARNINGS})

# ml_dtypes, and an Eigen that is new enough for it
if(EXISTS "${TRN_PEERS}/ml_dtypes/ml_dtypes/include/float8.h" AND GXX)
    set(eigen)
    foreach(directory "${TRN_PEERS}/eigen" /usr/include/eigen3)
        if(NOT eigen AND EXISTS "${directory}/Eigen/src/Core/util/Meta.h")
            file(STRINGS "${directory}/Eigen/src/Core/util/Meta.h" found REGEX get_integer_by_size)
            if(found)
                set(eigen "${directory}")
            endif()
        endif()
    endforeach()
    if(eigen)
        file(STRINGS "${TRN_PEERS}/ml_dtypes/ml_dtypes/__init__.py" version REGEX "^__version__")
        string(REGEX REPLACE "[^0-9.]" "" version "${version}")
        convert_peer(ML_DTYPES convert_ml_dtypes.cc "${GXX}" -std=c++17
            "-DCONVERT_PEER_VERSION=\"${version}\"" -isystem "${TRN_PEERS}/ml_dtypes" -isystem "${eigen}")
    else()
        message(STATUS "ml_dtypes is left out: it needs an Eigen newer than 3.4.0 in ${TRN_PEERS}/eigen")
    endif()
endif()

if(EXISTS "${TRN_PEERS}/cpfloat/src/cpfloat_binary32.h")
    if(EXISTS "${TRN_PEERS}/cpfloat/deps/pcg-c/include/pcg_variants.h")
        file(STRINGS "${TRN_PEERS}/cpfloat/license.spdx" version REGEX "^PackageVersion: ")
        string(REGEX REPLACE "[^0-9.]" "" version "${version}")
        convert_peer(CPFLOAT convert_cpfloat.c "${CMAKE_C_COMPILER}" -std=gnu11 -w
            "-DCONVERT_PEER_VERSION=\"${version}\"" -isystem "${TRN_PEERS}/cpfloat/deps/pcg-c/include"
            -isystem "${TRN_PEERS}/cpfloat/src")
    else()
        message(STATUS "CPFloat is left out: its submodule deps/pcg-c is not checked out")
    endif()
endif()
