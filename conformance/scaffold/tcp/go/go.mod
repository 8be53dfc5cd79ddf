module stack

go 1.19
