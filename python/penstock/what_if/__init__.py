"""What would another discipline do for the link of a capture? The capture's flows are simulated, and react.

`streams` finds transfers and their round trips, `others` datagrams, `link` the rate and the queue, `model` makes a
scenario of them, `answer` simulates it under each discipline and decides, `gateway` writes the result as a file.
"""
