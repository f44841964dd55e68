# cmake/tegula-embed.cmake - kernels that are compiled when a program is built, as part of one of its targets.
#
#   tegula_embed(TARGET target            executable or library of this folder; gets NAME.c, and NAME.h on its include path
#                VARIANT variant          as `tegula variants` lists them; of a PLUGIN, or built in
#                ARCH arch...             sm_80, sm_90a ...
#                [DQK n DHV n]            widths; not needed with SHAPES
#                [SHAPES shape...]        B=8,NH=16,T=8192,dqk=128,dhv=256: sizes to choose schedules for
#                [NAME name]              of files and functions; default: the variant's with _, and _step with TOKENS
#                [DTYPE type] [SCHEDULES text...] [GROUP n] [TOKENS n] [COUNT] [PACKED] [POOL]
#                [STATES word...]         how states are kept: bf16 v-first index-out ...
#                [WISDOM file]            what `tegula tune` found; without it what tegula brings, never the user's own
#                [PLUGIN file or target]  shared object with variants of one's own, as for --load
#                [OPTIONS word...])       more of `tegula compile`, as they are
#
# `tegula compile` runs again when an argument, the wisdom, the plugin or the command is another.

function(_tegula_embed_fail)
  list(JOIN ARGV "" text)
  message(FATAL_ERROR "tegula_embed: ${text}")
endfunction()

# Fails for the first thing that is wrong with what tegula_embed has parsed.
macro(_tegula_embed_check)
  if(E_UNPARSED_ARGUMENTS)
    list(GET E_UNPARSED_ARGUMENTS 0 word)
    list(JOIN known ", " known)
    _tegula_embed_fail("unexpected argument ${word}: expected one of ${known}")
  endif()
  foreach(key ${E_KEYWORDS_MISSING_VALUES})
    _tegula_embed_fail("${key} needs a value")
  endforeach()
  foreach(key TARGET VARIANT ARCH)
    if(NOT E_${key})
      _tegula_embed_fail("${key} is missing")
    endif()
  endforeach()
  if(NOT E_SHAPES AND NOT (E_DQK AND E_DHV))
    _tegula_embed_fail("DQK and DHV, or SHAPES, are missing")
  endif()
  if(NOT TARGET ${E_TARGET})
    _tegula_embed_fail("TARGET: there is no target ${E_TARGET}; make it first")
  endif()
  get_target_property(type ${E_TARGET} TYPE)
  get_target_property(folder ${E_TARGET} SOURCE_DIR)
  if(NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
    _tegula_embed_fail("TARGET ${E_TARGET}: expected an executable or a library with sources, found ${type}")
  elseif(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    _tegula_embed_fail("TARGET ${E_TARGET}: expected a target of this folder, found one of ${folder}")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages)
    _tegula_embed_fail("the generated code is C: add C to the languages of project(), found ${languages}")
  endif()
  if(NOT E_NAME MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    _tegula_embed_fail("NAME: expected a C identifier, found ${E_NAME}")
  endif()
  get_target_property(names ${E_TARGET} TEGULA_EMBEDDED)
  if("${E_NAME}" IN_LIST names)
    _tegula_embed_fail("NAME: ${E_TARGET} has a program ${E_NAME} already; give this one another NAME")
  endif()
  foreach(key WISDOM PLUGIN)
    if(E_${key} AND NOT TARGET "${E_${key}}")
      get_filename_component(E_${key} "${E_${key}}" ABSOLUTE)
      if(NOT EXISTS "${E_${key}}")
        _tegula_embed_fail("${key}: there is no file ${E_${key}}")
      endif()
    endif()
  endforeach()
endmacro()

# Sets `words` to the arguments of `tegula compile` but for -o and the plugin, `needed` to what they name.
macro(_tegula_embed_words)
  list(JOIN E_ARCH "," arch)
  set(words ${E_VARIANT} --name ${E_NAME} --arch ${arch} ${E_OPTIONS})
  foreach(key DTYPE DQK DHV GROUP TOKENS STATES)
    string(TOLOWER --${key} option)
    if(E_${key})
      list(JOIN E_${key} "," value)
      list(APPEND words ${option} ${value})
    endif()
  endforeach()
  foreach(key ${flags})
    string(TOLOWER --${key} option)
    if(E_${key})
      list(APPEND words ${option})
    endif()
  endforeach()
  foreach(shape IN LISTS E_SHAPES)
    list(APPEND words --shape ${shape})
  endforeach()
  foreach(schedule IN LISTS E_SCHEDULES)
    list(APPEND words --schedule "${schedule}")
  endforeach()
  if(E_WISDOM)
    set(needed ${E_WISDOM})
  else()
    set(E_WISDOM ${folder}/no-wisdom)
    file(WRITE ${E_WISDOM} "")
  endif()
  list(APPEND words --wisdom ${E_WISDOM})
endmacro()

function(tegula_embed)
  set(flags COUNT PACKED POOL)
  set(values TARGET VARIANT NAME DTYPE DQK DHV GROUP TOKENS WISDOM PLUGIN)
  set(lists ARCH SHAPES SCHEDULES STATES OPTIONS)
  set(known ${values} ${lists} ${flags})
  cmake_parse_arguments(PARSE_ARGV 0 E "${flags}" "${values}" "${lists}")
  if(NOT E_NAME)
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" E_NAME "${E_VARIANT}")
    if(E_TOKENS)
      string(APPEND E_NAME _step)
    endif()
  endif()
  _tegula_embed_check()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/tegula/${E_TARGET}/${E_NAME})
  _tegula_embed_words()
  file(GENERATE OUTPUT ${folder}/arguments CONTENT "${words};${E_PLUGIN}\n") # is only touched when it is another
  if(TARGET "${E_PLUGIN}")
    list(APPEND needed ${E_PLUGIN})
    set(E_PLUGIN $<TARGET_FILE:${E_PLUGIN}>)
  endif()
  if(E_PLUGIN)
    list(APPEND needed ${E_PLUGIN})
    list(APPEND words --load ${E_PLUGIN})
  endif()
  add_custom_command(
    OUTPUT ${folder}/${E_NAME}.c ${folder}/${E_NAME}.h ${folder}/tegula_embed.h
    COMMAND tegula::command compile ${words} -o ${folder}
    DEPENDS ${folder}/arguments $<TARGET_FILE:tegula::command> ${needed}
    COMMENT "tegula: compiling ${E_VARIANT} for ${arch}"
    VERBATIM)
  set_property(TARGET ${E_TARGET} APPEND PROPERTY TEGULA_EMBEDDED ${E_NAME})
  target_sources(${E_TARGET} PRIVATE ${folder}/${E_NAME}.c ${folder}/${E_NAME}.h)
  target_include_directories(${E_TARGET} PRIVATE ${folder})
  target_link_libraries(${E_TARGET} PRIVATE ${CMAKE_DL_LIBS})
endfunction()
