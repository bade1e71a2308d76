module boathouse.dev/tools/pause

go 1.26
