for file in /usr/bin/bash /usr/bin/gdb "$INPUT"; do
    lancet functions --json "$file" | sha256sum
    lancet loops --json "$file" | sha256sum
done
lancet disasm --liveness /usr/bin/bash execute_command_internal | sha256sum
lancet cfg /usr/bin/bash execute_command_internal --format svg | sha256sum
lancet rewrite /usr/bin/bash --tool count -o edited
sha256sum edited
lancet functions /dev/null || echo "exit status $?"
