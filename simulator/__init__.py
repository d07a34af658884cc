"""A stand-in for the providers of generated video, run as its own process: `python -m simulator`.

It speaks fal's queue protocol and the parts of fal's platform API that look jobs up and bill them, keeps a
durable journal of every job it took (the truth that tests compare with), and misbehaves when told to. It
imports nothing of the project, and nothing of the project imports it.
"""
