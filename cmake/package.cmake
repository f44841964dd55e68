# cmake/package.cmake - Debian packages by CPack, one a component: `./dev package`. Made with TEGULA_STATIC_LLVM, so that
# beside the C library they need nothing but each other. What else they need is computed (dpkg-shlibdeps).

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tegula)
set(CPACK_PACKAGE_VENDOR "The Tegula authors")
set(CPACK_PACKAGE_CONTACT "The Tegula authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "kernels of the linear-attention family for NVIDIA GPUs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime compiler command development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib) # they link each other
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

# tegula_package(COMPONENT PACKAGE DESCRIPTION [DEPENDS COMPONENT...] [CONTAINS DEBIAN_PACKAGE...])
macro(tegula_package component package description)
  cmake_parse_arguments(P "" "" "DEPENDS;CONTAINS" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${description})
  set(CPACK_COMPONENT_${upper}_DEPENDS ${P_DEPENDS})
  tegula_copyright(${component} ${package} ${P_CONTAINS})
endmacro()

# Our licence, and those of the libraries that are inside, as Debian has collected them.
function(tegula_copyright component package)
  file(READ ${PROJECT_SOURCE_DIR}/LICENSE text)
  foreach(other ${ARGN})
    set(file /usr/share/doc/${other}/copyright)
    if(EXISTS ${file})
      file(READ ${file} more)
      string(APPEND text "\n\n---- what is inside of ${other} ----\n\n${more}")
    elseif(TEGULA_STATIC_LLVM)
      string(APPEND text "\n\n${other} is inside.\n")
    endif()
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/copyright/${package}/copyright "${text}")
  install(FILES ${CMAKE_BINARY_DIR}/copyright/${package}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component})
endfunction()

set(llvm llvm-22-dev libzstd-dev zlib1g-dev libxxhash-dev)
tegula_package(runtime libtegula-rt${TEGULA_ABI} "Runtime of Tegula: loads and launches compiled kernels on the CUDA driver"
               CONTAINS libxxhash-dev)
tegula_package(compiler libtegula${TEGULA_ABI} "Compiler of Tegula as a library, with LLVM inside" DEPENDS runtime CONTAINS ${llvm})
tegula_package(command tegula "Command of Tegula: compile, check, tune, embed; the emulator"
               CONTAINS ${llvm} libjansson-dev)
tegula_package(development libtegula-dev "Headers of Tegula, find_package(tegula), pkg-config"
               DEPENDS runtime compiler command)
include(CPack)
