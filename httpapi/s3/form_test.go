package s3

import (
	"io"
	"mime/multipart"
	"strings"
	"testing"
)

// The headers of a form's fields count, too: nobody signed them yet.
func TestFormHeadersAreBounded(t *testing.T) {
	body := "--b\r\nContent-Disposition: form-data; name=\"key\"\r\nX-A: " + strings.Repeat("a", 9<<20) +
		"\r\n\r\nk\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\ntext\r\n--b--\r\n"
	src := strings.NewReader(body)
	head := &formHead{r: src, left: maxFormHeadBytes}
	if _, _, err := readForm(multipart.NewReader(head, "b")); err == nil || head.left >= 0 {
		t.Errorf("%v, %d left", err, head.left)
	}
	if read := len(body) - src.Len(); read > 2*maxFormHeadBytes {
		t.Errorf("%d bytes were read", read)
	}
	if _, err := head.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
		t.Errorf("read on: %v", err)
	}
}
