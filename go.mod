module ogw

go 1.26.8
