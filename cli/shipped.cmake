# Writes OUTPUT, C with the text of the file INPUT, which messages call NAME.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "#include \"cli.h\"\n\nconst char shipped_name[] = \"${NAME}\";\nconst char shipped_wisdom[] =\n    \"${text}\";\n")
