#!/usr/bin/env sh
# The report is tested in Debian's Chromium. In CI it is installed where that is possible; elsewhere
# nobody's system is changed, and the browser tests say that they were skipped.
command -v chromium >/dev/null 2>&1 && exit 0
if [ "${CI:-}" = "true" ] && [ "$(id -u)" = "0" ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing Chromium for the browser tests ..."
  apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1 ||
    echo "Chromium could not be installed; the browser tests will be skipped."
fi
exit 0
