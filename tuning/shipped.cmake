# Writes OUTPUT, C with the text of the file INPUT, which messages call NAME.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "#include \"tuning/tuning.h\"\n\nconst char tg_shipped_name[] = \"${NAME}\";\nconst char tg_shipped_wisdom[] =\n    \"${text}\";\n")
