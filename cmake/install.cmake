# cmake/install.cmake - what `cmake --install` lays down, by component: runtime, compiler, command, development.
# All of it may be moved together; nothing in it knows where it was built.

# Headers that users include as <tegula/FOLDER/NAME.h>; among each other they go by relative paths. Whoever writes a
# variant of a family includes that family's tables, and its recurrence is compiled along.
foreach(header program/program.h program/set.h program/tegula_embed.h dsl/tegula.h interpreter/interpreter.h
        compiler/compiler.h runtime/runtime.h jit/jit.h tuning/tuning.h tuning/numbers.h emulator/tegula_emu.h)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula/${folder} COMPONENT development)
endforeach()
install(DIRECTORY variants/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula/variants COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "scalar_oracle.c")

# ---- libraries and the command ----
add_library(tegula-headers INTERFACE) # all that a plugin for --load needs
set_target_properties(tegula-headers PROPERTIES EXPORT_NAME headers)
set_target_properties(libtegula PROPERTIES EXPORT_NAME tegula)
set_target_properties(tegula-rt PROPERTIES EXPORT_NAME rt)
set_target_properties(tegula-jit PROPERTIES EXPORT_NAME jit)
set_target_properties(tegula-tuning PROPERTIES EXPORT_NAME tuning)
set_target_properties(tegula-emu PROPERTIES EXPORT_NAME emulator)
set_target_properties(tegula PROPERTIES EXPORT_NAME command)
foreach(target tegula-headers libtegula tegula-rt tegula-jit tegula-tuning tegula-emu)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
foreach(pair tegula-rt:runtime libtegula:compiler tegula-jit:compiler tegula-tuning:compiler tegula-emu:command tegula:command)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 target)
  list(GET pair 1 component)
  install(TARGETS ${target} EXPORT tegula-targets
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT development)
endforeach()
install(TARGETS tegula-headers EXPORT tegula-targets)

# ---- manual page, made by the command; completion of its words ----
set(manual ${CMAKE_BINARY_DIR}/tegula.1)
add_custom_command(OUTPUT ${manual} DEPENDS tegula ${PROJECT_SOURCE_DIR}/cmake/man.sh
                   COMMAND ${PROJECT_SOURCE_DIR}/cmake/man.sh $<TARGET_FILE:tegula> > ${manual} VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual})
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
file(READ cmake/completion.sh words)
configure_file(cmake/completion.bash completion/tegula @ONLY)
configure_file(cmake/completion.zsh completion/_tegula @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/completion.sh)
install(FILES ${CMAKE_BINARY_DIR}/completion/tegula
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
install(FILES ${CMAKE_BINARY_DIR}/completion/_tegula DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        COMPONENT command)

# ---- find_package ----
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tegula-config-version.cmake COMPATIBILITY SameMinorVersion)
file(COPY cmake/tegula-config.cmake cmake/tegula-embed.cmake DESTINATION ${CMAKE_BINARY_DIR})
install(FILES cmake/tegula-config.cmake cmake/tegula-embed.cmake ${CMAKE_BINARY_DIR}/tegula-config-version.cmake
        DESTINATION ${config_folder} COMPONENT development)
install(EXPORT tegula-targets NAMESPACE tegula:: DESTINATION ${config_folder} COMPONENT development)
export(EXPORT tegula-targets NAMESPACE tegula::) # the build folder can be found too: -Dtegula_DIR=build

# ---- pkg-config ----
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
function(tegula_pkgconfig name what needed)
  configure_file(cmake/pkgconfig.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
tegula_pkgconfig(tegula "the compiler: declarations to PTX" "")
tegula_pkgconfig(tegula-rt "the runtime: neither LLVM nor libcuda is linked" "")
tegula_pkgconfig(tegula-jit "compiler and runtime together: kernels on first use" "tegula, tegula-rt, tegula-tuning")
tegula_pkgconfig(tegula-tuning "the fastest schedule of a shape, and what kernels are judged by" "tegula, tegula-rt")
