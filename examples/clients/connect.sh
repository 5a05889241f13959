#!/usr/bin/env bash
# Lets a client from npm, as it is, start the server and say that it is connected; in a home and a folder of its own.
# Needs `toolyard` on the PATH, npx, jq and a network; no account.
set -euo pipefail

client=${1:?usage: connect.sh claude-code|codex|gemini|opencode}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cache=$(npm config get cache)
export HOME=$place/home npm_config_cache=$cache
mkdir -p "$HOME/.gemini" "$place/project"
cd "$place/project"
toolyard serve --install "$client" --yes

case $client in
  claude-code)
    # A project's servers wait until a person approves them in a session; the user's own do not.
    npx -y @anthropic-ai/claude-code mcp add-json -s user toolyard "$(jq -c .mcpServers.toolyard .mcp.json)"
    rm .mcp.json
    npx -y @anthropic-ai/claude-code mcp list
    ;;
  codex) npx -y @openai/codex mcp list ;;
  gemini)
    jq -n --arg folder "$PWD" '{($folder): "TRUST_FOLDER"}' >"$HOME/.gemini/trustedFolders.json"
    npx -y @google/gemini-cli mcp list
    ;;
  opencode) npx -y opencode-ai mcp list ;;
  *) echo "connect.sh: no script for '$client'" >&2 && exit 2 ;;
esac
