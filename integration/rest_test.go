package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

func restPut(url, body string) error {
	r, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	_, err = restDo(r)
	return err
}

func restGet(url string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return restDo(r)
}

func restDo(r *http.Request) (string, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.200s", r.Method, r.URL, resp.Status, b)
	}
	return string(b), err
}

func restDelete(url string) error {
	r, err := http.NewRequest(http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	_, err = restDo(r)
	return err
}
